"""What interfaces and the kernel of a host can do with XDP, and whether they can carry the tester inside the kernel."""
