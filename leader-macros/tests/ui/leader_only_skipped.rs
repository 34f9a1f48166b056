use leader_core::leader_only;

struct Report;

#[leader_only]
fn own_type() -> Report {
    Report
}
#[leader_only]
async fn own_type_async() -> Result<Report, String> {
    Ok(Report)
}
#[leader_only]
fn generic<T>(value: T) -> T {
    value
}
#[leader_only]
async fn number() -> u64 {
    1
}
#[leader_only(skipped = "text")]
fn value_of_another_type() -> u32 {
    1
}
#[leader_only(on_loss = "cancel", skipped = name)]
async fn value_that_the_body_used_up(name: String) -> String {
    drop(name);
    String::new()
}

struct Service;
impl Service {
    #[leader_only]
    async fn reference(&self) -> &str {
        "x"
    }
}

fn main() {}
