// Follows the status: when it changes, the elements with data-live are fetched again and replaced where they differ. Without this file the pages
// show what was true when they were loaded.
const pause = 3000 // milliseconds between two updates

const status = document.getElementById('live')
let wanted = false
let busy = false
let attach = () => {}

// Charts show the values of the nearest point.
import('/static/chart.js').then((charts) => {
  attach = charts.attach
  attach(document)
}).catch(() => {})

// keep carries over what a reader opened or where the focus is.
function replace(old, fresh) {
  if (old.outerHTML === fresh.outerHTML || old.contains(document.activeElement) && document.activeElement.matches('input, select, textarea')) return
  const open = [...old.querySelectorAll('details')].map((d) => d.open)
  fresh.querySelectorAll('details').forEach((d, i) => { d.open = open[i] ?? d.open })
  const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null
  old.replaceWith(fresh)
  if (focused) fresh.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus()
  attach(fresh)
}

// What takes long to compute is fetched when a reader opens it.
for (const later of document.querySelectorAll('details[data-later]')) {
  later.addEventListener('toggle', async () => {
    const path = later.dataset.later
    if (!later.open || !path) return
    delete later.dataset.later
    const told = later.querySelector('p')
    told.textContent = 'It is being computed…'
    try {
      const answer = await fetch(path, { headers: { Accept: 'text/html' }, redirect: 'error' })
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
      const part = document.importNode(page.querySelector('main .chart, main .notice'), true)
      told.replaceWith(part)
      attach(later)
      if (!answer.ok) throw new Error(answer.status)
    } catch {
      later.dataset.later = path
    }
  })
}

// The address of the page, without what an action added.
for (const button of document.querySelectorAll('button.copy')) {
  if (!navigator.clipboard) break
  button.hidden = false
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(location.origin + location.pathname)
    button.textContent = 'Copied'
  })
}

async function update() {
  if (busy || document.hidden) { wanted = true; return }
  busy = true
  wanted = false
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, redirect: 'error' })
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
      for (const old of document.querySelectorAll('[data-live]')) {
        const fresh = page.querySelector(`[data-live="${CSS.escape(old.dataset.live)}"]`)
        if (fresh) replace(old, document.importNode(fresh, true))
      }
      document.title = page.title
    }
  } catch { /* the stream reconnects and says so */ }
  setTimeout(() => { busy = false; if (wanted) update() }, pause)
}

if (document.querySelector('[data-live]') && location.pathname !== '/login') {
  const events = new EventSource('/events')
  events.addEventListener('open', () => { status.textContent = 'This page is kept up to date.' })
  events.addEventListener('error', () => { status.textContent = 'The connection is lost: this page shows an earlier status.' })
  events.addEventListener('change', update)
  document.addEventListener('visibilitychange', () => { if (!document.hidden && wanted) update() })
}
