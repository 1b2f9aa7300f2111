"""Fixes for findings of the proof: the edits that bring a program closer to the standard one, each tried.

Given what was checked, return its report with fixes added. A rule can say which value is wrong, but not what a program
should have been; the standard program of its role can. Whatever is offered here has been checked: the finding is gone
with it, and no other came. It may still not be what was meant, so none of it is safe.
"""

from gemmspec.mend.trial import with_fixes

__all__ = ["with_fixes"]
