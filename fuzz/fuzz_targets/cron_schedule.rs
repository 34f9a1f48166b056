#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leader_fuzz::foreign::run("cron_schedule", bytes));
