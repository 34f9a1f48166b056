use leader_core::leader_only;

#[leader_only]
const fn constant() {}
#[leader_only]
unsafe fn dangerous() {}
#[leader_only]
extern "C" fn foreign() {}
#[leader_only]
fn never() -> ! {
    loop {}
}
#[leader_only]
async fn async_never() -> ! {
    loop {}
}
#[leader_only(gruop = "x")]
const unsafe extern "C" fn all_at_once() {}

fn main() {
    constant();
    foreign();
}
