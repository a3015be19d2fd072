// Shows the values of the nearest point below a chart, on the pointer or the arrow keys. The values come from the table behind the chart.
export function attach (root) {
  const charts = root.matches?.('figure.chart') ? [root] : root.querySelectorAll('figure.chart')
  for (const figure of charts) follow(figure)
}

function follow (figure) {
  const svg = figure.querySelector(':scope > svg')
  const readout = figure.querySelector('.chart-readout')
  const marks = svg ? [...svg.querySelectorAll('[data-row]')] : []
  if (!readout || marks.length === 0 || svg.dataset.followed) return
  svg.dataset.followed = 'yes'
  const header = [...figure.querySelectorAll('thead th')].map((h) => h.textContent)
  const rows = [...figure.querySelectorAll('tbody tr')]
  let at = -1
  const show = (i) => {
    marks[at]?.classList.remove('near')
    at = Math.max(0, Math.min(marks.length - 1, i))
    marks[at].classList.add('near')
    const cells = [...rows[Number(marks[at].dataset.row)].children]
    readout.textContent = cells.map((c, k) => c.textContent && `${header[k]}: ${c.textContent}`).filter(Boolean).join(', ')
  }
  svg.addEventListener('pointermove', (e) => {
    let best = -1
    let least = Infinity
    marks.forEach((m, i) => {
      const box = m.getBoundingClientRect()
      const distance = Math.abs(box.left + box.width / 2 - e.clientX)
      if (distance < least) { best = i; least = distance }
    })
    if (best !== at) show(best)
  })
  svg.setAttribute('tabindex', '0')
  svg.addEventListener('keydown', (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key]
    if (step) { show(at + step); e.preventDefault() }
  })
}
