"""The spool: how is what must not be lost kept, and given back so that its receiver can bear it?"""
