"""Generated programs, their expected recordings, and the comparison with real recordings."""
