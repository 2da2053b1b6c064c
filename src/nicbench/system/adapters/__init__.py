"""What tools and files say of network adapters: pure parsers, for inventory and tuning alike.

ValueError (or another of ``inventory.base.NOT_UNDERSTOOD``) where a text is not what it should be; null where it says
nothing.
"""
