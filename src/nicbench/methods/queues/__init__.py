"""How frames are spread over queues, cores and ports, and what each of them got."""
