"""What is known of torch's binary interface, each fact with its self-test."""
