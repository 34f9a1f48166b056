//! Attribute macros of `leader-core` and `leader-cron`.
