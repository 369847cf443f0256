"""The spool's door: how do records come in over HTTP, all of a request or nothing of it?"""
