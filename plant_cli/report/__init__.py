"""The report page and tables as text."""
