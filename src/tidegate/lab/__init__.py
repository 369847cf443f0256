"""The lab: real processes that behave as a system file says, for storms on this machine."""
