"""`vestige top`: shows what a recorded program is doing now. `target.py` finds its trace and asks the system about its
process, `window.py` adds up the last seconds, `picture.py` formats them as lines, `terminal.py` draws and reads keys.
"""
