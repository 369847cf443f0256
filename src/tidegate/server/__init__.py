"""The door of a server: middleware that admits, lets wait and refuses before the app is asked."""
