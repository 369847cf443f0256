"""Which retries, timeouts and breakers does the source code show, and which of them will hurt?

`files` finds and parses, `names` knows what each name means, `read` turns a module into a handful
of records (`model`), the `rules` look at those, `layers` follows calls from file to file, and
`audit` does all of it. Only syntax is looked at: nothing of what is audited is imported or run.
"""
