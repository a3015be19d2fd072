// The DP statements of a tokio-postgres client: each has an epsilon of its own, and a line of JSON says what was sent.
use futures_util::{future, pin_mut, SinkExt, TryStreamExt};
use std::env::var;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error, IsolationLevel, NoTls};

const BOUND: &str = "SELECT dp_count(count(*), $1) FROM people WHERE grp = $2";
const SETTING: &str = "SELECT noisy(count(*), 4) FROM people";
const FAILING: &str = "SELECT dp_count(count(*), $1) / (count(*) - 50) FROM people";

fn epsilon() -> f64 {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let base: f64 = var("DP_BASE").unwrap().parse().unwrap();
    let n = NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    ((base + f64::from(n) / 10000.0) * 10000.0).round() / 10000.0
}

fn sent(epsilon: f64, source: &str, times: i32, params: &[&dyn std::fmt::Display]) {
    let list: Vec<String> = params.iter().map(|p| format!("\"{p}\"")).collect();
    println!("{{\"epsilon\": {epsilon}, \"source\": \"{source}\", \"times\": {times}, \"params\": [{}]}}", list.join(", "));
}

fn bound(epsilon: f64, params: &[&dyn std::fmt::Display]) {
    sent(epsilon, "argument", 1, params)
}

fn config() -> Config {
    let mut config = Config::new();
    config.host(var("PGHOST").unwrap()).port(var("PGPORT").unwrap().parse().unwrap()).dbname(var("PGDATABASE").unwrap());
    config.user(var("PGUSER").unwrap()).password(var("PGPASSWORD").unwrap()).application_name(var("PGAPPNAME").unwrap());
    config
}

async fn arguments(client: &Client) -> Result<(), Error> {
    let e = epsilon();
    client.simple_query(&format!("SELECT dp_count(count(*), {e}) FROM people")).await?;
    bound(e, &[]);
    let e = epsilon();
    client.query_one(&format!("SELECT dp_count(count(*), {e}) FROM people"), &[]).await?;
    bound(e, &[]);
    let e = epsilon();
    client.query_one(BOUND, &[&e, &1i32]).await?;
    bound(e, &[&e, &1]);
    let statement = client.prepare(BOUND).await?;
    for group in 0..3i32 {
        let e = epsilon();
        client.query_one(&statement, &[&e, &group]).await?;
        bound(e, &[&e, &group]);
    }
    let e = epsilon();
    for _ in 0..3 {
        client.query_one(&statement, &[&e, &2i32]).await?;
    }
    sent(e, "argument", 3, &[&e, &2]);
    future::try_join_all((0..12i32).map(|i| {
        let statement = &statement;
        async move {
            let (e, group) = (epsilon(), i % 3);
            bound(e, &[&e, &group]);
            client.query_one(statement, &[&e, &group]).await
        }
    }))
    .await?;
    let e = epsilon();
    let rows = client.query_raw("SELECT grp, dp_count(count(*), $1) FROM people WHERE grp = ANY($2) GROUP BY grp", [&e as &(dyn ToSql + Sync), &vec![0i32, 1]]).await?;
    pin_mut!(rows);
    while rows.try_next().await?.is_some() {}
    bound(e, &[&e, &"{0,1}"]);
    let e = epsilon();
    client.query_typed(BOUND, &[(&e, Type::FLOAT8), (&1i32, Type::INT4)]).await?;
    bound(e, &[&e, &1]);
    client.batch_execute("CREATE TEMP TABLE copied (a int)").await?;
    let sink = client.copy_in("COPY copied FROM STDIN").await?;
    pin_mut!(sink);
    sink.send(bytes::Bytes::from_static(b"1\n2\n")).await?;
    assert_eq!(sink.finish().await?, 2);
    let (first, second) = (epsilon(), epsilon());
    client.batch_execute(&format!("SELECT dp_count(count(*), {first}) FROM people; SELECT 1; SELECT dp_count(count(*), {second}) FROM people")).await?;
    bound(first, &[]);
    bound(second, &[]);
    for sql in ["SELEC", "SELECT dp_count(count(*), 0.5) FROM nothing"] {
        let _ = client.query(sql, &[]).await;
    }
    Ok(())
}

async fn transactions(client: &mut Client) -> Result<(), Error> {
    let mut transaction = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
    let e = epsilon();
    let statement = transaction.prepare("SELECT grp, dp_count(count(*), $1) FROM people GROUP BY grp").await?;
    let portal = transaction.bind(&statement, &[&e]).await?;
    while transaction.query_portal(&portal, 1).await?.len() > 0 {}
    bound(e, &[&e]);
    let e = epsilon();
    let copied: Vec<_> = transaction.copy_out(&format!("COPY (SELECT dp_count(count(*), {e}) FROM people) TO STDOUT")).await?.try_collect().await?;
    assert_eq!(copied.len(), 1);
    bound(e, &[]);
    let savepoint = transaction.savepoint("point").await?;
    let e = epsilon();
    assert!(savepoint.query(FAILING, &[&e]).await.is_err());
    bound(e, &[&e]);
    savepoint.rollback().await?;
    let e = epsilon();
    transaction.query_one("SELECT set_config('dp.epsilon', $1, true)", &[&e.to_string()]).await?;
    transaction.query_one(SETTING, &[]).await?;
    sent(e, "setting", 1, &[]);
    transaction.commit().await?;
    let transaction = client.transaction().await?;
    let e = epsilon();
    transaction.query_one(BOUND, &[&e, &0i32]).await?;
    bound(e, &[&e, &0]);
    drop(transaction); // which rolls back
    let e = epsilon();
    client.batch_execute(&format!("SET dp.epsilon = '{e}'")).await?;
    client.query_one(SETTING, &[]).await?;
    sent(e, "setting", 1, &[]);
    client.query_one(&format!("{SETTING} WHERE grp = $1"), &[&1i32]).await?;
    sent(e, "setting", 1, &[&1]);
    client.batch_execute("DISCARD ALL").await?;
    let e = epsilon();
    client.query_one(BOUND, &[&e, &1i32]).await?;
    bound(e, &[&e, &1]);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut client, connection) = config().connect(NoTls).await?;
    let running = tokio::spawn(connection);
    arguments(&client).await?;
    transactions(&mut client).await?;
    drop(client);
    running.await??;
    let e = epsilon();
    let (client, connection) = config().options(format!("-c dp.epsilon={e}")).connect(NoTls).await?;
    let running = tokio::spawn(connection);
    client.query_one(SETTING, &[]).await?;
    sent(e, "setting", 1, &[]);
    drop(client);
    running.await??;
    Ok(())
}
