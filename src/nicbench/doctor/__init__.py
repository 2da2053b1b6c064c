"""What a machine has and lacks for nicbench, each lack with the command that mends it. Nothing is changed."""
