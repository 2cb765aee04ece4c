"""The figures: how fast Bubble is, and by what measure.

`python -m bench` takes every figure several times, each time beside a reference on the same machine in the same minute, and prints medians
with their spread. Servers are processes of their own on the loopback interface; this process is the load. Nothing here is a test: what is
counted is checked for completeness, but no figure fails for being slow.
"""
