"""`vestige device`: checks the recording of devices on a machine that has one."""
