"""`vestige memory` and `vestige memory-report`."""
