//! What goes from a cluster of Kubernetes when a folder no longer holds it, and what stays.
