"""Helpers for all other folders, which import none of them: terminal text, sizes and times, private files."""
