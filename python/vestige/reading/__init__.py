"""Reading traces back: checked metadata, tables as files, what a notebook shows."""
