use leader_core::leader_only;

#[leader_only]
struct Struct;

#[leader_only]
impl Struct {}

#[leader_only]
const VALUE: u8 = 1;

trait Work {
    #[leader_only]
    fn work(&self);
    #[leader_only]
    async fn work_async(&self) -> Option<u8>;
}

fn main() {
    let _ = Struct;
    let _ = VALUE;
}
