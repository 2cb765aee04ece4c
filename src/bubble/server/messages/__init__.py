"""A thread's messages for those who look at them: pages, and streams that many share."""
