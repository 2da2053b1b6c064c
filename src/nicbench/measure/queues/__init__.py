"""What receive queues and cores got of the frames of a trial."""
