"""What makes the pages of the site that are not written by hand, and checks the result."""
