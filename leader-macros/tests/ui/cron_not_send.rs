use leader_cron::cron;

#[cron("@daily")]
async fn keeps_to_its_thread() {
    let local = std::rc::Rc::new(1);
    async {}.await;
    drop(local);
}

fn main() {}
