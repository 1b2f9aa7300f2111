"""A brute-force oracle for small protocols: every interleaving, from the PTX ISA's semantics alone.

Shares the Protocol's data types with gemmspec, and no code with its proof engine.
"""
