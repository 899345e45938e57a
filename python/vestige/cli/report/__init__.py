"""`vestige report`, and the short report after `vestige run`."""
