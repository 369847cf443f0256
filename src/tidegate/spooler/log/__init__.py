"""The log of a lane: how does a record outlive a crash, a full disk and a damaged one?"""
