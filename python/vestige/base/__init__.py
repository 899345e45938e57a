"""What every room uses and what uses none of them: text for terminals, sizes and times, files that are private."""
