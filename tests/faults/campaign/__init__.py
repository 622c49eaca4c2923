"""A campaign of faults: kills, full disks, lost rights, damaged files and starved processes
against every command that writes a run.
"""
