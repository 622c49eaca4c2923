"""Commands that meet on one run: every order of their file operations leaves what some order of
whole commands would leave.
"""
