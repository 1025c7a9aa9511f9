"""Associations of resources (topics) with subjects, WEAK or STRONG.

A strong association owns its subject: it is frozen, no other resource may be associated with the subject, and
no schema may refer to it. A cascading delete removes the schemas of strong associations.
"""
