"""What becomes of a system under a trigger, when requests are taken as a fluid."""
