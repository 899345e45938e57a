"""`vestige et`: execution traces, checked and shown."""
