"""What nicbench knows beyond OTG, over gRPC: the service of ``nicbench.proto``, and what protoc made of it."""
