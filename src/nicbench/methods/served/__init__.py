"""What is measured for clients of `nicbench serve`."""
