"""What the processes of one host know of each other, and how a person tells all of them."""
