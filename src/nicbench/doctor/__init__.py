"""What a machine has and lacks for nicbench, each lack with the command that fixes it. Nothing is changed."""
