"""The standing attack: hostile and random input against the library, compared with slow code of its own.

``python -m attack.fuzz`` runs it for some minutes; ``make test`` runs a small part that is always the same.
"""
