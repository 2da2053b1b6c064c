"""Each interface of the test: link, queues, offloads, steering."""
