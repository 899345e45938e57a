"""Makes the generated pages of the site, and checks the result."""
