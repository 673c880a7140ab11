// Sending screenshots to the service.
