//! Cron jobs that run on exactly one instance of a fleet.
