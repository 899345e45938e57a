"""`vestige diff`: two recordings, or two groups of them, compared."""
