"""Traces read back: metadata that is believed, tables in files, what a notebook shows."""
