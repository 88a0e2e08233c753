// Sounds of a drive, made by the browser; off until somebody switches them on.

const KEY = "termdp.sound";

export class Sound {
  constructor(button) {
    this.button = button;
    this.isOn = localStorage.getItem(KEY) === "on";
    this.context = null; // browsers allow one only after a click or key press
    button.addEventListener("click", () => this.toggle());
    this.show();
  }

  show() {
    this.button.textContent = this.isOn ? "Sound on" : "Sound off";
    this.button.setAttribute("aria-pressed", String(this.isOn));
  }

  toggle() {
    this.isOn = !this.isOn;
    localStorage.setItem(KEY, this.isOn ? "on" : "off");
    this.show();
    this.coin();
  }

  /** A tone that glides from one pitch to another and fades away. */
  glide(from, to, seconds, kind = "sine", loudness = 0.12) {
    if (!this.isOn) return;
    this.context ??= new AudioContext();
    const now = this.context.currentTime;
    const tone = this.context.createOscillator();
    const volume = this.context.createGain();
    tone.type = kind;
    tone.frequency.setValueAtTime(from, now);
    tone.frequency.exponentialRampToValueAtTime(to, now + seconds);
    volume.gain.setValueAtTime(loudness, now);
    volume.gain.exponentialRampToValueAtTime(0.001, now + seconds);
    tone.connect(volume).connect(this.context.destination);
    tone.start(now);
    tone.stop(now + seconds);
  }

  steer() {
    this.glide(220, 320, 0.12, "triangle", 0.08);
  }

  coin() {
    this.glide(880, 1320, 0.16);
  }

  crash() {
    this.glide(160, 30, 0.7, "sawtooth", 0.25);
    this.glide(90, 25, 0.9, "square", 0.15);
  }
}
