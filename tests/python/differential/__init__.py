"""Generated programs, what they should be recorded as, and how a recording is compared with that."""
