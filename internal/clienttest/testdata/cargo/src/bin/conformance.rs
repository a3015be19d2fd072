// What the conformance test of tokio-postgres does: its output is the same on every run.
use bytes::Bytes;
use futures_util::{future, pin_mut, SinkExt, TryStreamExt};
use std::env::var;
use tokio_postgres::{Config, Error, NoTls};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::new();
    config.user("ann").host(var("PGHOST")?).port(var("PGPORT")?.parse()?).dbname(var("PGDATABASE")?);
    let (mut client, connection) = config.connect(NoTls).await?;
    let running = tokio::spawn(connection);
    let code = |e: Error| e.code().map(|c| c.code().to_string());
    let row = client.query_one("SELECT $1::int4 + 1, $2::text, $3::float8[]", &[&41i32, &None::<&str>, &vec![1.5f64, 2.0]]).await?;
    println!("{} {:?} {:?}", row.get::<_, i32>(0), row.get::<_, Option<&str>>(1), row.get::<_, Vec<f64>>(2));
    let statement = client.prepare("SELECT $1::int4 * 10").await?;
    let answers = future::try_join_all((0..5i32).map(|i| {
        let (client, statement) = (&client, &statement);
        async move { client.query_one(statement, &[&i]).await.map(|r| r.get::<_, i32>(0)) }
    }));
    println!("pipelined {:?}", answers.await?);
    drop(statement);
    println!("{:?}", client.batch_execute("CREATE TEMP TABLE t (a int, b text); INSERT INTO t VALUES (0, 'zero'); SELECT 1/0").await.map_err(code));
    client.batch_execute("CREATE TEMP TABLE t (a int, b text)").await?;
    for sql in ["SELECT 1/0", "SELEC"] {
        println!("{:?}", client.query(sql, &[]).await.map(|r| r.len()).map_err(code));
    }
    let sink = client.copy_in("COPY t FROM STDIN").await?;
    pin_mut!(sink);
    sink.send(Bytes::from_static(b"1\tone\n2\t\\N\n")).await?;
    println!("copied {}", sink.finish().await?);
    let out: Vec<Bytes> = client.copy_out("COPY t TO STDOUT").await?.try_collect().await?;
    println!("{:?}", out);
    let transaction = client.transaction().await?;
    let portal = transaction.bind("SELECT generate_series(1, 25)", &[]).await?;
    for _ in 0..3 {
        println!("portal {}", transaction.query_portal(&portal, 10).await?.len());
    }
    transaction.rollback().await?;
    let cancel = client.cancel_token();
    let slow = client.simple_query("SELECT pg_sleep(600)");
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        cancel.cancel_query(NoTls).await
    };
    let (slow, stop) = future::join(slow, stop).await;
    stop?;
    println!("cancelled {:?}", slow.map(|m| m.len()).map_err(code));
    println!("{}", client.query_one("SELECT 'done'", &[]).await?.get::<_, &str>(0));
    drop(client);
    running.await??;
    Ok(())
}
