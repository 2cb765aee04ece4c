"""The one door to data: the contract (`base`), its rules (`admission`) and its backends."""
